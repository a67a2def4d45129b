"""`hairmesh analyze`: whole folders of photos through one call, with what comes back as files."""
