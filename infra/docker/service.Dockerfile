# One image for every service without torch: api, rollout-orchestrator, sandbox-executor, reward-grader.
#   docker build -f infra/docker/service.Dockerfile --build-arg SERVICE=api .
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ARG SERVICE
WORKDIR /src
RUN python3 -m venv /opt/venv
COPY requirements.lock pyproject.toml README.md ./
COPY libs libs
COPY services services
RUN /opt/venv/bin/pip install --no-cache-dir --constraint requirements.lock ".[${SERVICE}]"

FROM ${PYTHON_IMAGE} AS service
ARG SERVICE
# Only the executor runs programs: it alone carries bubblewrap and the languages.
RUN if [ "$SERVICE" = sandbox-executor ]; then \
      apt-get update && apt-get install -y --no-install-recommends bubblewrap python3 nodejs npm \
      && rm -rf /var/lib/apt/lists/*; \
    fi \
    && useradd --uid 1000 --create-home sandpiper \
    && mkdir -p /data && chown sandpiper /data
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH SANDPIPER_DATA_DIR=/data OTEL_SERVICE_NAME=${SERVICE} SERVICE=${SERVICE}
USER sandpiper
WORKDIR /data
# Folder names use underscores, service names hyphens.
ENTRYPOINT ["/bin/sh", "-c", "exec python3 -m services.$(echo $SERVICE | tr - _)"]
