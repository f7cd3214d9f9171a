// Visits the described fields of one event, in the order in which trace files hold them.
#pragma once
#include <boost/describe.hpp>
#include <boost/mp11.hpp>

namespace motley::trace {

template <class T>
using Fields = boost::describe::describe_members<T, boost::describe::mod_public>;

template <class T, class Visitor>
constexpr void for_each_field(const T& data, Visitor&& visit) {
  boost::mp11::mp_for_each<Fields<T>>([&](auto field) { visit(data.*field.pointer); });
}
template <class T, class Visitor>
constexpr void for_each_field(T& data, Visitor&& visit) {
  boost::mp11::mp_for_each<Fields<T>>([&](auto field) { visit(data.*field.pointer); });
}

}  // namespace motley::trace
