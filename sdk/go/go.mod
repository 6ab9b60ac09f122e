module bywash.dev/go

go 1.21
