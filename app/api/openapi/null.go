package openapi

import "slices"

// allowNull changes the document so that optional members of JSON bodies may be null, which equals
// leaving them out.
func allowNull(doc object) {
	for _, path := range doc.in("paths") {
		for _, operation := range path.value.(object) {
			schema := operation.value.(object).in("requestBody").in("content").in("application/json").in("schema")
			properties := schema.in("properties")
			for i, p := range properties {
				if !slices.Contains(listOf(schema, "required"), any(p.name)) {
					properties[i].value = withNull(p.value.(object))
				}
			}
		}
	}
}

// withNull returns a schema that also allows null.
func withNull(schema object) object {
	kind := schema.get("type")
	if kind == nil {
		return object{{"anyOf", []any{schema, object{{"type", "null"}}}}}
	}
	if values := listOf(schema, "enum"); values != nil {
		schema = schema.with("enum", append(values, nil))
	}
	return schema.with("type", []any{kind, "null"})
}
