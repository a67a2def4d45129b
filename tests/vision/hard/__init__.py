"""Pictures that are not easy, and what each of them gets."""
