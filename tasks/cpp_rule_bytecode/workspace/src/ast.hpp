// Syntax trees.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "value.hpp"

namespace rules {

struct Position {
  int line = 0;
  int column = 0;

  bool operator==(const Position&) const = default;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Literal {
  Value value;
};
struct Variable {
  std::string name;
};
struct Input {
  std::string name;
};
struct UnaryExpr {
  Unary op;
  ExprPtr operand;
};
struct BinaryExpr {
  Binary op;
  ExprPtr left, right;
};
// `&&` or `||`.
struct LogicExpr {
  bool is_and;
  ExprPtr left, right;
};
struct ChoiceExpr {
  ExprPtr condition, yes, no;
};
struct CallExpr {
  const Builtin* builtin;
  std::vector<ExprPtr> arguments;
};

// The position is that of the operator (`?` of a choice), the function's name, or the only token. Parentheses have none.
struct Expr {
  Position position;
  std::variant<Literal, Variable, Input, UnaryExpr, BinaryExpr, LogicExpr, ChoiceExpr, CallExpr> node;
};

struct Stmt;
using Block = std::vector<Stmt>;

struct LetStmt {
  std::string name;
  ExprPtr value;
};
struct AssignStmt {
  std::string name;
  ExprPtr value;
};
struct PrintStmt {
  ExprPtr value;
};
struct IfStmt {
  ExprPtr condition;
  Block yes;
  // Empty if there is no `else`, or an empty one.
  Block no;
};
struct WhileStmt {
  ExprPtr condition;
  Block body;
};
struct BlockStmt {
  Block body;
};

// The position is that of the keyword (`print`, `if`, `while`), the name of the variable (let, assignment), or `{`.
struct Stmt {
  Position position;
  std::variant<LetStmt, AssignStmt, PrintStmt, IfStmt, WhileStmt, BlockStmt> node;
};

}  // namespace rules
