"""What each page shows; a folder called `pages` would be served by Streamlit itself."""
