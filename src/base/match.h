// std::visit(match{...}): one arm per member of a closed set; a forgotten arm does not compile.
#pragma once

namespace motley {

template <class... Arms>
struct match : Arms... {
  using Arms::operator()...;
};
template <class... Arms>
match(Arms...) -> match<Arms...>;

}  // namespace motley
