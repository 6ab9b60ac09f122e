module stack

go 1.21

require bywash v0.0.0

replace bywash => ../../../sdk/go
