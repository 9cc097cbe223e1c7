#include "interpreter.hpp"

#include "parser.hpp"

namespace rules {

namespace {

class Interpreter {
 public:
  Interpreter(const Inputs& inputs, std::ostream& out) : inputs_(inputs), out_(out) {}

  void run(const Block& block) {
    scopes_.emplace_back();
    for (const Stmt& stmt : block) {
      std::visit([&](const auto& node) { run(stmt.position, node); }, stmt.node);
    }
    scopes_.pop_back();
  }

 private:
  // Adds a position to errors of operations.
  template <class Function>
  static auto at(Position position, Function function) {
    try {
      return function();
    } catch (const OperationError& error) {
      throw SourceError(position, error.what());
    }
  }

  Value& variable(const std::string& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    throw std::logic_error("the parser checks names");
  }

  bool test(Position position, const ExprPtr& condition) {
    const Value value = evaluate(*condition);
    return at(position, [&] { return require_bool(value, "condition"); });
  }

  void run(Position, const LetStmt& node) {
    Value value = evaluate(*node.value);
    scopes_.back()[node.name] = std::move(value);
  }
  void run(Position, const AssignStmt& node) {
    Value value = evaluate(*node.value);
    variable(node.name) = std::move(value);
  }
  void run(Position, const PrintStmt& node) { out_ << to_text(evaluate(*node.value)) << "\n"; }
  void run(Position position, const IfStmt& node) { run(test(position, node.condition) ? node.yes : node.no); }
  void run(Position position, const WhileStmt& node) {
    while (test(position, node.condition)) run(node.body);
  }
  void run(Position, const BlockStmt& node) { run(node.body); }

  Value evaluate(const Expr& expr) {
    return std::visit([&](const auto& node) { return evaluate(expr.position, node); }, expr.node);
  }

  Value evaluate(Position, const Literal& node) { return node.value; }
  Value evaluate(Position, const Variable& node) { return variable(node.name); }
  Value evaluate(Position position, const Input& node) {
    const auto found = inputs_.find(node.name);
    if (found == inputs_.end()) throw SourceError(position, "no input `" + node.name + "`");
    return found->second;
  }
  Value evaluate(Position position, const UnaryExpr& node) {
    const Value operand = evaluate(*node.operand);
    return at(position, [&] { return operate(node.op, operand); });
  }
  Value evaluate(Position position, const BinaryExpr& node) {
    const Value left = evaluate(*node.left);
    const Value right = evaluate(*node.right);
    return at(position, [&] { return operate(node.op, left, right); });
  }
  Value evaluate(Position position, const LogicExpr& node) {
    const std::string what = node.is_and ? "operand of &&" : "operand of ||";
    const Value left = evaluate(*node.left);
    if (at(position, [&] { return require_bool(left, what); }) != node.is_and) return left;
    const Value right = evaluate(*node.right);
    at(position, [&] { return require_bool(right, what); });
    return right;
  }
  Value evaluate(Position position, const ChoiceExpr& node) { return evaluate(test(position, node.condition) ? *node.yes : *node.no); }
  Value evaluate(Position position, const CallExpr& node) {
    std::vector<Value> arguments;
    for (const ExprPtr& argument : node.arguments) arguments.push_back(evaluate(*argument));
    return at(position, [&] { return node.builtin->call(arguments); });
  }

  const Inputs& inputs_;
  std::ostream& out_;
  std::vector<std::map<std::string, Value>> scopes_;
};

}  // namespace

void interpret(const Block& program, const Inputs& inputs, std::ostream& out) { Interpreter(inputs, out).run(program); }

}  // namespace rules
