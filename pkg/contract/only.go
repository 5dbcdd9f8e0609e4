package contract

// Only returns those of the annotations that have one of the keys; nil where there are none.
func Only(all map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		value, ok := all[key]
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}
