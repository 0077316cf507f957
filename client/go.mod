module github.com/doorward/doorward/client

go 1.26.0
