"""The stubs that other teams take, as these take and use them."""
