package admit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestEveryRuleIsTested reads the rules out of the source, so that a rule
// without a module that breaks it is noticed.
func TestEveryRuleIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, tc := range refusals() {
		for _, rule := range tc.rules {
			tested[rule] = true
		}
	}
	for _, tc := range bodyRefusals() {
		for _, rule := range tc.rules {
			tested[rule] = true
		}
	}
	for _, tc := range checkRefusals() {
		for _, rule := range tc.rules {
			tested[rule] = true
		}
	}
	all := declaredRules(t)
	for rule := range all {
		if !tested[rule] {
			t.Errorf("no test breaks the rule %s", rule)
		}
	}
	for rule := range tested {
		if !all[rule] {
			t.Errorf("the rule %s is tested and not declared", rule)
		}
	}
	limits := 0
	for rule := range all {
		if strings.HasPrefix(rule, "limit/") {
			limits++
		}
	}
	if n := reflect.TypeFor[Limits]().NumField(); limits != n {
		t.Errorf("%d limit rules for %d fields of Limits", limits, n)
	}
}

func declaredRules(t testing.TB) map[string]bool {
	file, err := parser.ParseFile(token.NewFileSet(), "rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Rule") {
			return true
		}
		rule, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if all[rule] {
			t.Errorf("two rules are called %s", rule)
		}
		all[rule] = true
		return true
	})
	return all
}
