# An image with the program and nothing else: no shell, no other user's files, nothing to write to.
#
#   docker build -t bywash .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges \
#       -p 8080:8080 -v ./bywash.toml:/etc/bywash/bywash.toml:ro bywash
#
# In the file, set listen.http = "0.0.0.0:8080", so that the port can be reached from outside. The
# operators' address stays on the container's own loopback. With [state], its folder must be a
# volume that user 65532 may write to. To let operators in, make a key (`bywash token-keys
# operators.key`) that only user 65532 may read, and mount it where listen.operators_key says. Then
# use `docker exec ID bywash status --key FILE`.

# The image is named by its digest, so that the same source is always built by the same image.
# docs/contributing/releasing.md says how to change it.
FROM rust:1.95-alpine@sha256:606fd313a0f49743ee2a7bd49a0914bab7deedb12791f3a846a34a4711db7ed2 AS build
# A C compiler and its library, for SQLite (the demo's shop), cryptography and the allocator.
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
COPY lab lab
COPY papers papers
# The program has no shared libraries, as is usual on Alpine.
RUN cargo build --release --locked -p bywash && strip target/release/bywash

FROM scratch
# The root certificates against which certificates of https:// upstreams are checked.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /src/target/release/bywash /usr/bin/bywash
# The user "nobody", as a number, because the image has no file that maps a name to it.
USER 65532:65532
ENV PATH=/usr/bin
EXPOSE 8080
# Asks the operators' listener whether the gateway is ready, which takes no token. Add --admin if
# that listener is not at 127.0.0.1:7070.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["bywash", "status", "--ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["bywash"]
CMD ["run", "--config", "/etc/bywash/bywash.toml"]
