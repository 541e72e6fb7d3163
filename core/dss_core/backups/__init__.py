"""The format of backups on disk, shared by the code that creates, manages and restores them."""
