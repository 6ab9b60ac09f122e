# An image with the program and nothing else: no shell, no other user's files, nothing to write to.
#
#   docker build -t bywash .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges \
#       -p 8080:8080 -v ./bywash.toml:/etc/bywash/bywash.toml:ro bywash
#
# In the file: listen.http = "0.0.0.0:8080", so that the port can be reached from outside. The
# address for operators stays on the container's own loopback. With [state] its folder must be a
# volume that user 65532 may write to. For operators: a key (`bywash token-keys operators.key`, readable by user 65532
# alone), mounted where listen.operators_key says; then `docker exec ID bywash status --key FILE`.

# By its digest, so that the same source is built by the same image; docs/contributing/releasing.md says how to exchange it.
FROM rust:1.95-alpine@sha256:606fd313a0f49743ee2a7bd49a0914bab7deedb12791f3a846a34a4711db7ed2 AS build
# A C compiler and its library: for SQLite (the demo's shop) and for cryptography.
RUN apk add --no-cache musl-dev gcc make ca-certificates
WORKDIR /src
COPY Cargo.toml Cargo.lock rustfmt.toml clippy.toml LICENSE ./
COPY crates crates
COPY console/Cargo.toml console/Cargo.toml
COPY console/src console/src
COPY console/dist console/dist
COPY native/sentry native/sentry
COPY native/levels native/levels
COPY sdk/tower sdk/tower
COPY sites sites
COPY benches benches
COPY lab lab
# Without shared libraries, as ever on Alpine.
RUN cargo build --release --locked -p bywash && strip target/release/bywash

FROM scratch
# The roots that the certificates of https:// upstreams go back to.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /src/target/release/bywash /usr/bin/bywash
# Nobody; a number, since there is no file that could give it a name.
USER 65532:65532
ENV PATH=/usr/bin
EXPOSE 8080
# Asks the operators' listener whether it serves, which takes no token. For another address than 127.0.0.1:7070 add --admin.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["bywash", "status", "--ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["bywash"]
CMD ["run", "--config", "/etc/bywash/bywash.toml"]
