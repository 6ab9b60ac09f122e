module bywash/conformance

go 1.21

require bywash v0.0.0

replace bywash => ../../../go
