"""The Hugging Face hub: what is in the local cache, what is there to download, and downloading it."""
