"""What load.py is made of: files on disk, the strict check, what a model lacks."""
