"""The app for `streamlit run app.py`; `spanlab serve` starts the same pages."""

from spanlab.ui.navigation import run

if __name__ == "__main__":
    run()
