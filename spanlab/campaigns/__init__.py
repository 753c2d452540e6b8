"""A campaign: where a lead sets it up, follows it and finishes it."""
