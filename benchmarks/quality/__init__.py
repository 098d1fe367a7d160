"""The experiment of `benchmarks.relay_quality`: what is asked, what is observed, what is made of it."""
