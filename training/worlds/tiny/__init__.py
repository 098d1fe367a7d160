"""The world of the pool `tiny`: scenes and easy-VQA images, each member blind to something the others see."""
