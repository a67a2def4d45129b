"""Pictures of answers: kept for a while, served by URL."""
