module bywash.dev/conformance

go 1.21

require bywash.dev/go v0.0.0

replace bywash.dev/go => ../../../go
