package openapi

import "slices"

// allowNull changes the document so that optional members of request bodies may be null,
// which equals leaving them out.
func allowNull(tree object) {
	paths, _ := tree.get("paths").(object)
	for _, path := range paths {
		operations, _ := path.value.(object)
		for _, operation := range operations {
			o, _ := operation.value.(object)
			body, _ := o.get("requestBody").(object)
			content, _ := body.get("content").(object)
			media, _ := content.get("application/json").(object)
			schema := reader{tree}.resolveRef(media.get("schema"))
			properties, _ := schema.get("properties").(object)
			for i, p := range properties {
				if !slices.Contains(listOf(schema, "required"), any(p.name)) {
					properties[i].value = withNull(p.value)
				}
			}
		}
	}
}

// withNull returns a schema that also allows null.
func withNull(schema any) any {
	o, _ := schema.(object)
	kind, plain := o.get("type").(string)
	switch {
	case plain:
		out := slices.Clone(o)
		for i, m := range out {
			switch m.name {
			case "type":
				out[i].value = []any{kind, "null"}
			case "enum":
				out[i].value = append(listOf(o, "enum"), nil)
			}
		}
		return out
	case o.get("type") != nil, isNullable(o): // null is one of its types already
		return schema
	default:
		return object{{"anyOf", []any{schema, object{{"type", "null"}}}}}
	}
}

// isNullable reports whether withNull created the schema: operations may share a body.
func isNullable(schema object) bool {
	return slices.ContainsFunc(listOf(schema, "anyOf"), func(s any) bool {
		o, _ := s.(object)
		return stringOf(o, "type") == "null"
	})
}
