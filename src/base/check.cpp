#include "base/check.h"

#include <fmt/format.h>

namespace motley {

void fail_check(std::string_view sentence, Where where) {
  throw Bug(fmt::format("an assertion of Motley failed: {} ({}:{}, {})", sentence, where.file, where.line, where.function));
}

}  // namespace motley
