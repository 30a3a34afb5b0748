// Package models has the rows of Bobbin's tables, a file for each noun: values of package core
// with the columns that only the database needs. Many values are rows as they are, see Names.
//
// Columns differ from the fields of a value only where the database requires it: an absent id is
// NULL, lists and free-form objects are JSON, and so are other fields with a serializer. Rows are plain
// data: nothing here reads or writes a database. A table has the plural of its type's name,
// unless TableName or Names says otherwise.
package models
