# Puma, the server of most Ruby applications: Rack. It hands over the path undecoded: no route.
require "json"

# A response to HEAD has no body; its reflection goes into a field, and a field has to be short.
LONGEST_FIELD = 6000

# Every text is Latin 1, one character a byte; JSON in ASCII.
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
