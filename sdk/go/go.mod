module bywash

go 1.21
