// std::visit(match{...}): one lambda per alternative of a variant; a missing one does not compile.
#pragma once

namespace motley {

template <class... Arms>
struct match : Arms... {
  using Arms::operator()...;
};
template <class... Arms>
match(Arms...) -> match<Arms...>;

}  // namespace motley
