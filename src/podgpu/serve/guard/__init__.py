"""Who may read the pages, and how the way there is protected: TLS, client certificates, passwords and tokens."""
