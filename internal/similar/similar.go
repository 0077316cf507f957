// Package similar finds the known name that somebody probably meant by an unknown one.
package similar

// Name returns the name of known that differs least from name, the first of several, by
// Levenshtein's distance in bytes; empty if all differ by more than two, or in every byte.
func Name(name string, known []string) string {
	best, distance := "", min(3, len(name)) // anything further is a different word
	for _, k := range known {
		if d := editDistance(name, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
