# spanlab with its app, API and worker, for `docker build -t spanlab .`; compose.yaml runs them.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY data data
COPY spanlab spanlab
COPY optimizers optimizers
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY requirements.lock /tmp/
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r /tmp/requirements.lock
COPY --from=build /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps --no-index /tmp/wheels/*.whl
RUN useradd --create-home --uid 10001 spanlab && mkdir /data && chown spanlab /data
COPY docker-entrypoint.sh /usr/local/bin/
USER spanlab
ENV SPANLAB_HOME=/data
WORKDIR /data
VOLUME /data
EXPOSE 8501
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["spanlab", "serve", "--host", "0.0.0.0", "--port", "8501", "--log-json"]
