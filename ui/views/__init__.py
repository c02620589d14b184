"""What single pages need beyond the shared pieces, one file a page."""
