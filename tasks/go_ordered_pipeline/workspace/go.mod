module example.com/digest

go 1.24
