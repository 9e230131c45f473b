"""What a file system and its options really cost on flash, and why."""
