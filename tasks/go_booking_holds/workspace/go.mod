module example.com/bookd

go 1.24
