# libmotley.so, what is installed with it, and the files by which other projects find it: find_package(Motley), pkg-config.
# It holds the modules below `library`, exports what include/motley/ marks, and needs no torch: programs bring their own gradients.
add_library(motley_shared SHARED ${CMAKE_SOURCE_DIR}/src/learn/no_torch/learner.cpp)  # in place of the one in motley_learn
add_library(Motley::motley ALIAS motley_shared)
set_target_properties(motley_shared PROPERTIES
  OUTPUT_NAME motley
  EXPORT_NAME motley
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}  # before 1.0.0 a minor version may break programs
  MOTLEY_WITHOUT_TORCH ON)
motley_for_shared_library(motley_shared)
# -z defs: an undefined symbol, such as one of torch, fails here and not in a user's program. Sanitizers leave theirs undefined.
if(NOT MOTLEY_SANITIZE)
  target_link_options(motley_shared PRIVATE -Wl,-z,defs)
endif()
target_link_libraries(motley_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,motley_library> motley_compiler)
target_include_directories(motley_shared INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(motley_shared INTERFACE cxx_std_20)

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Motley)
set(generated ${CMAKE_BINARY_DIR}/package)
file(RELATIVE_PATH MOTLEY_PREFIX_FROM_PC_FILE /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/motley.pc.in ${generated}/motley.pc @ONLY)
write_basic_package_version_file(${generated}/MotleyConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS motley_shared EXPORT MotleyTargets LIBRARY COMPONENT library NAMELINK_COMPONENT library)
install(EXPORT MotleyTargets NAMESPACE Motley:: FILE MotleyConfig.cmake DESTINATION ${package_folder} COMPONENT library)
install(FILES ${generated}/MotleyConfigVersion.cmake DESTINATION ${package_folder} COMPONENT library)
install(FILES ${generated}/motley.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/motley ${CMAKE_BINARY_DIR}/include/motley
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library FILES_MATCHING PATTERN "*.h")
