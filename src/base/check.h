// check(): assertions about our own code, enabled in every build. Input is checked with Result instead.
#pragma once
#include <stdexcept>
#include <string_view>

namespace motley {

/// A violated assertion inside Motley. main() turns it into exit code 70.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A position in our source; clang 14 cannot read std::source_location from this standard library.
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

/// `sentence` states the condition that should hold.
inline void check(bool condition, std::string_view sentence, Where where = Where::here()) {
  if (!condition) [[unlikely]]
    fail_check(sentence, where);
}

}  // namespace motley
