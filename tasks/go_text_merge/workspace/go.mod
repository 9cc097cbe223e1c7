module example.com/textmerge

go 1.24
