"""The team page: who did what, how far they agree, whether questions were drawn fairly."""
