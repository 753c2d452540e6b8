"""The app for `streamlit run app.py`; `spanlab serve` starts the same pages."""

import streamlit as st

from spanlab.app import guard as server
from spanlab.app import navigation

if __name__ == "__main__":
    navigation.run()
else:  # the server starts; it runs this file again for each page
    server.apply_options()
    app = st.App(__file__, **server.login_options(), middleware=server.guards())
