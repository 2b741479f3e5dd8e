# The labelling service, without torch: docker build -t ruleout-label .
# What it keeps is in /data: the project, and the images it was made from.
FROM python:3.12-slim

WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
# Labelling needs neither torch nor what trains models, which is most of what there is to install.
RUN python -c "import tomllib; \
p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
more = p['optional-dependencies']; \
trains = ('torch', 'safetensors', 'scipy', 'scikit-learn', 'pooch'); \
own = [one for one in p['dependencies'] if not one.startswith(trains)]; \
print(*own, *more['label'], *more['postgres'], sep='\n')" > needs.txt \
    && pip install --no-cache-dir -r needs.txt
COPY src src
RUN pip install --no-cache-dir --no-deps . \
    && useradd --uid 10001 --create-home label \
    && mkdir /data && chown label /data

USER label
WORKDIR /data
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/health', timeout=4)"]
ENTRYPOINT ["ruleout", "label"]
CMD ["serve", "/data/project", "--host", "0.0.0.0"]
