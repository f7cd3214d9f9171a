// check(): for our own mistakes, on in every build. Never for input: that gets a Result.
#pragma once
#include <stdexcept>
#include <string_view>

namespace motley {

/// A broken promise inside Motley. The door turns it into exit code 70.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A place in our source; std::source_location, which clang 14 does not read from this standard library.
struct Where {
  const char* file;
  int line;
  const char* function;
  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                              const char* function = __builtin_FUNCTION()) {
    return {file, line, function};
  }
};

[[noreturn]] void fail_check(std::string_view sentence, Where where = Where::here());

/// `sentence` says what should hold.
inline void check(bool condition, std::string_view sentence, Where where = Where::here()) {
  if (!condition) [[unlikely]]
    fail_check(sentence, where);
}

}  // namespace motley
