# An origin on Puma, the server of most Ruby applications (Rack). Puma passes the path on undecoded,
# so the reflection has no `route`.
require "json"

# The maximum length of the field with the reflection. A response to HEAD has no body, so its
# reflection is in a field, which must be short.
LONGEST_FIELD = 6000

# Every text is Latin-1, one character for each byte. JSON is in ASCII.
def latin(octets) = octets && octets.dup.force_encoding("ISO-8859-1").encode("UTF-8")

def ascii(value) = JSON.generate(value, ascii_only: true)

run(lambda do |env|
  body = env["rack.input"].read
  seen = {
    method: latin(env["REQUEST_METHOD"]),
    target: latin(env["REQUEST_URI"]),
    host: latin(env["HTTP_HOST"]),
    route: nil,
    body: body.unpack1("H*"),
  }
  text = ascii(seen)
  fields = { "Content-Type" => "application/json", "Content-Length" => text.bytesize.to_s }
  next [200, fields, [text]] if env["REQUEST_METHOD"] != "HEAD"
  text = ascii(seen.merge(body: nil)) if text.bytesize > LONGEST_FIELD
  [200, { "Reflection" => text }, []]
end)
