// Package match finds the lines that two texts have in common.
package match

// Pair is a line that two texts have in common.
type Pair struct {
	A, B int // indices of the line in both texts
}

// Match returns a longest common subsequence of a and b.
//
// Of several ones, it returns the one that this walk finds, which starts with i and j at the beginning of a and b: equal lines at
// i and j are a pair. Otherwise the line at i is passed over if the rest of a after it has as long a subsequence in common with
// the rest of b as would be left by passing over the line at j, or a longer one; if not, the line at j is passed over. Stored
// comments and review marks depend on this choice.
func Match(a, b []string) []Pair {
	// longest[i][j] is the length for a[i:] and b[j:].
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var pairs []Pair
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, Pair{i, j})
			i++
			j++
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}
