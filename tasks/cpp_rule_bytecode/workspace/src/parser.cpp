#include "parser.hpp"

#include <set>

namespace rules {

namespace {

constexpr int DEPTH_MAX = 200;

enum class Kind { int_, float_, text, name, input, symbol, end };

struct Token {
  Kind kind;
  std::string text;
  Position position;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Splits a source into tokens. Columns count bytes from 1.
class Lexer {
 public:
  explicit Lexer(const std::string& source) : source_(source) {}

  std::vector<Token> tokens() {
    std::vector<Token> found;
    do {
      found.push_back(next());
    } while (found.back().kind != Kind::end);
    return found;
  }

 private:
  char peek(std::size_t offset = 0) const { return at_ + offset < source_.size() ? source_[at_ + offset] : '\0'; }

  char take() {
    const char c = source_[at_++];
    if (c == '\n') {
      ++position_.line;
      position_.column = 1;
    } else {
      ++position_.column;
    }
    return c;
  }

  Token next() {
    while (at_ < source_.size()) {
      if (peek() == '#') {
        while (at_ < source_.size() && peek() != '\n') take();
      } else if (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') {
        take();
      } else {
        break;
      }
    }
    Token token{Kind::end, "", position_};
    if (at_ == source_.size()) return token;
    if (is_digit(peek())) {
      number(token);
    } else if (peek() == '"') {
      text(token);
    } else if (is_letter(peek())) {
      token.kind = Kind::name;
      while (is_letter(peek()) || is_digit(peek())) token.text += take();
    } else if (peek() == '$' && is_letter(peek(1))) {
      token.kind = Kind::input;
      take();
      while (is_letter(peek()) || is_digit(peek())) token.text += take();
    } else {
      token.kind = Kind::symbol;
      for (const char* pair : {"==", "!=", "<=", ">=", "&&", "||"}) {
        if (peek() == pair[0] && peek(1) == pair[1]) token.text = pair;
      }
      if (token.text.empty()) token.text = peek();
      if (token.text.size() == 1 && std::string("+-*/%<>!?:=(){},;").find(peek()) == std::string::npos) {
        throw SourceError(position_, "unexpected character");
      }
      for (std::size_t i = 0; i < token.text.size(); ++i) take();
    }
    return token;
  }

  void number(Token& token) {
    token.kind = Kind::int_;
    while (is_digit(peek())) token.text += take();
    if (peek() == '.' && is_digit(peek(1))) {
      token.kind = Kind::float_;
      token.text += take();
      while (is_digit(peek())) token.text += take();
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-';
    if (peek() == 'e' && is_digit(peek(1 + sign))) {
      token.kind = Kind::float_;
      for (std::size_t i = 0; i <= sign; ++i) token.text += take();
      while (is_digit(peek())) token.text += take();
    }
    if (is_letter(peek())) throw SourceError(token.position, "malformed number");
  }

  void text(Token& token) {
    token.kind = Kind::text;
    take();
    while (peek() != '"') {
      if (at_ == source_.size() || static_cast<unsigned char>(peek()) < ' ') throw SourceError(token.position, "unterminated text");
      char c = take();
      if (c == '\\') {
        const Position escape = position_;
        switch (at_ < source_.size() ? take() : '\0') {
          case 'n': c = '\n'; break;
          case 't': c = '\t'; break;
          case '"': c = '"'; break;
          case '\\': c = '\\'; break;
          default: throw SourceError(escape, "unknown escape");
        }
      }
      token.text += c;
    }
    take();
  }

  const std::string& source_;
  std::size_t at_ = 0;
  Position position_{1, 1};
};

struct Operator {
  const char* symbol;
  int level;
  Binary op;
};

constexpr Operator OPERATORS[] = {
    {"==", 1, Binary::eq}, {"!=", 1, Binary::ne}, {"<", 2, Binary::lt},  {"<=", 2, Binary::le}, {">", 2, Binary::gt}, {">=", 2, Binary::ge},
    {"+", 3, Binary::add}, {"-", 3, Binary::sub}, {"*", 4, Binary::mul}, {"/", 4, Binary::div}, {"%", 4, Binary::rem},
};
constexpr int LEVEL_MAX = 4;

class Parser {
 public:
  explicit Parser(const std::string& source) : tokens_(Lexer(source).tokens()), scopes_(1) {}

  Block program() {
    Block block;
    while (current().kind != Kind::end) block.push_back(statement());
    return block;
  }

 private:
  const Token& current() const { return tokens_[at_]; }
  bool is(const char* text) const { return (current().kind == Kind::symbol || current().kind == Kind::name) && current().text == text; }
  Token take() { return tokens_[current().kind == Kind::end ? at_ : at_++]; }

  bool skip(const char* text) {
    if (!is(text)) return false;
    take();
    return true;
  }

  void expect(const char* text) {
    if (!skip(text)) throw SourceError(current().position, std::string("expected `") + text + "`");
  }

  Token name() {
    if (current().kind != Kind::name || is_keyword(current().text)) throw SourceError(current().position, "expected a name");
    return take();
  }

  static bool is_keyword(const std::string& text) {
    for (const char* keyword : {"let", "print", "if", "else", "while", "true", "false"}) {
      if (text == keyword) return true;
    }
    return false;
  }

  void check_declared(const Token& name) const {
    for (const auto& scope : scopes_) {
      if (scope.count(name.text)) return;
    }
    throw SourceError(name.position, "unknown name `" + name.text + "`");
  }

  Block block() {
    expect("{");
    if (++depth_ > DEPTH_MAX) throw SourceError(current().position, "nested too deeply");
    scopes_.emplace_back();
    Block block;
    while (!is("}")) {
      if (current().kind == Kind::end) throw SourceError(current().position, "expected `}`");
      block.push_back(statement());
    }
    take();
    scopes_.pop_back();
    --depth_;
    return block;
  }

  Stmt statement() {
    Position position = current().position;
    if (is("{")) return {position, BlockStmt{block()}};
    if (skip("print")) {
      ExprPtr value = expression();
      expect(";");
      return {position, PrintStmt{std::move(value)}};
    }
    if (skip("if")) {
      IfStmt node{condition(), block(), {}};
      if (skip("else")) {
        if (is("if")) {
          node.no.push_back(statement());
        } else {
          node.no = block();
        }
      }
      return {position, std::move(node)};
    }
    if (skip("while")) {
      ExprPtr test = condition();
      return {position, WhileStmt{std::move(test), block()}};
    }
    if (skip("let")) {
      const Token variable = name();
      expect("=");
      ExprPtr value = expression();
      expect(";");
      if (!scopes_.back().insert(variable.text).second) {
        throw SourceError(variable.position, "`" + variable.text + "` is declared already");
      }
      return {variable.position, LetStmt{variable.text, std::move(value)}};
    }
    const Token variable = name();
    check_declared(variable);
    expect("=");
    ExprPtr value = expression();
    expect(";");
    return {variable.position, AssignStmt{variable.text, std::move(value)}};
  }

  ExprPtr condition() {
    expect("(");
    ExprPtr test = expression();
    expect(")");
    return test;
  }

  template <class Node>
  static ExprPtr make(Position position, Node node) {
    return std::make_unique<Expr>(Expr{position, std::move(node)});
  }

  ExprPtr expression() {
    if (++depth_ > DEPTH_MAX) throw SourceError(current().position, "nested too deeply");
    ExprPtr test = logic(false);
    if (is("?")) {
      const Position position = take().position;
      ExprPtr yes = expression();
      expect(":");
      ExprPtr no = expression();
      test = make(position, ChoiceExpr{std::move(test), std::move(yes), std::move(no)});
    }
    --depth_;
    return test;
  }

  // `||` binds less than `&&`. Both group to the left.
  ExprPtr logic(bool is_and) {
    auto operand = [&] { return is_and ? binary(1) : logic(true); };
    ExprPtr left = operand();
    while (is(is_and ? "&&" : "||")) {
      const Position position = take().position;
      ExprPtr right = operand();
      left = make(position, LogicExpr{is_and, std::move(left), std::move(right)});
    }
    return left;
  }

  ExprPtr binary(int level) {
    if (level > LEVEL_MAX) return unary();
    ExprPtr left = binary(level + 1);
    while (const Operator* found = operator_at(level)) {
      const Position position = take().position;
      ExprPtr right = binary(level + 1);
      left = make(position, BinaryExpr{found->op, std::move(left), std::move(right)});
    }
    return left;
  }

  const Operator* operator_at(int level) const {
    for (const Operator& candidate : OPERATORS) {
      if (candidate.level == level && is(candidate.symbol)) return &candidate;
    }
    return nullptr;
  }

  ExprPtr unary() {
    if (is("-") || is("!")) {
      const Token op = take();
      // The smallest int has no positive counterpart.
      if (op.text == "-" && current().kind == Kind::int_ && current().text == "9223372036854775808") {
        take();
        return make(op.position, Literal{*parse_int("-9223372036854775808")});
      }
      if (++depth_ > DEPTH_MAX) throw SourceError(op.position, "nested too deeply");
      ExprPtr operand = unary();
      --depth_;
      return make(op.position, UnaryExpr{op.text == "-" ? Unary::neg : Unary::not_, std::move(operand)});
    }
    return primary();
  }

  ExprPtr primary() {
    const Token token = take();
    switch (token.kind) {
      case Kind::int_: {
        const auto value = parse_int(token.text);
        if (!value) throw SourceError(token.position, "number is too large");
        return make(token.position, Literal{*value});
      }
      case Kind::float_: {
        const auto value = parse_float(token.text);
        if (!value) throw SourceError(token.position, "number is out of range");
        return make(token.position, Literal{*value});
      }
      case Kind::text: return make(token.position, Literal{token.text});
      case Kind::input: return make(token.position, Input{token.text});
      case Kind::name: break;
      default:
        if (token.kind == Kind::symbol && token.text == "(") {
          ExprPtr inner = expression();
          expect(")");
          return inner;
        }
        throw SourceError(token.position, "expected an expression");
    }
    if (token.text == "true" || token.text == "false") return make(token.position, Literal{token.text == "true"});
    if (is_keyword(token.text)) throw SourceError(token.position, "expected an expression");
    if (is("(")) return call(token);
    check_declared(token);
    return make(token.position, Variable{token.text});
  }

  ExprPtr call(const Token& name) {
    const Builtin* builtin = find_builtin(name.text);
    if (!builtin) throw SourceError(name.position, "unknown function `" + name.text + "`");
    expect("(");
    std::vector<ExprPtr> arguments;
    while (!is(")")) {
      if (!arguments.empty()) expect(",");
      arguments.push_back(expression());
    }
    take();
    if (arguments.size() != builtin->arity) {
      throw SourceError(name.position, "`" + name.text + "` takes " + std::to_string(builtin->arity) + " arguments");
    }
    return make(name.position, CallExpr{builtin, std::move(arguments)});
  }

  std::vector<Token> tokens_;
  std::vector<std::set<std::string>> scopes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Block parse(const std::string& source) { return Parser(source).program(); }

}  // namespace rules
