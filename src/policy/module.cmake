# The mechanisms, a folder for each kind.
file(GLOB mechanisms CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/policy/*/*.cpp)
set(mechanism_tests ${mechanisms})
list(FILTER mechanism_tests INCLUDE REGEX "_test\\.cpp$")
list(FILTER mechanisms EXCLUDE REGEX "_test\\.cpp$")
target_sources(motley_policy PRIVATE ${mechanisms})
list(APPEND tests ${mechanism_tests})
