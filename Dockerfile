# The decision service. It runs as nobody in particular, on a read-only root:
#
#   docker build -t bough .
#   docker run --read-only --tmpfs /tmp -v bough-data:/data -p 127.0.0.1:8000:8000 bough serve --data /data --host 0.0.0.0 --demo
#
# compose.yaml has it with PostgreSQL. TLS is a proxy's.

FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/bough
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN /opt/bough/bin/pip install -c constraints.txt ".[postgres]" pyarrow
# Machine code for any processor of this architecture: the one that builds is not the one that serves.
ENV NUMBA_CPU_NAME=generic
RUN NUMBA_CACHE_DIR=/opt/bough/kernels /opt/bough/bin/python -m bough.service.kernels \
    && chmod -R a+rX /opt/bough

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /tmp bough \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=build /opt/bough /opt/bough
ENV PATH=/opt/bough/bin:$PATH \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/tmp/bough-kernels
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
# numba takes compiled kernels only from a folder that it could write to, so they are copied (7 MB) to where it can.
ENTRYPOINT ["/bin/sh", "-c", "cp -rT /opt/bough/kernels \"$NUMBA_CACHE_DIR\"; exec bough \"$@\"", "bough"]
CMD ["serve", "--data", "/data", "--host", "0.0.0.0"]
