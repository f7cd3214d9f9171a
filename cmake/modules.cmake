# The table of modules, read by CMake, by tests/architecture_test.cpp and, through that test, by ARCHITECTURE.md.
# A module is a folder of src/, a namespace and a target. It may include, and links, the modules behind USES; names with :: are libraries.
# UNITY: its sources are compiled several at a time (large headers dominate), so names in unnamed namespaces differ within the module.

# foundation
motley_module(base      USES fmt::fmt Boost::headers)
# decisions: no clock, thread, file or environment
motley_module(cluster   USES base)
motley_module(policy    USES base cluster)
motley_module(pipeline  USES base cluster)
motley_module(wire      USES base cluster Boost::headers)
motley_module(trace     USES base Boost::headers OpenSSL::Crypto)
motley_module(protocol  UNITY USES base cluster policy pipeline wire trace)
# numbers
motley_module(codec     USES base)
motley_module(store     USES base codec OpenSSL::Crypto Threads::Threads)
motley_module(learn     USES base codec)
# drivers
motley_module(transport UNITY USES base wire Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
motley_module(sim       UNITY USES base cluster policy pipeline wire trace protocol codec store)
motley_module(runtime   UNITY USES base cluster policy pipeline wire trace protocol codec store transport
                                   Boost::headers OpenSSL::Crypto Threads::Threads)
motley_module(report    USES base trace Boost::headers)
# entry points
motley_module(config    UNITY USES base cluster policy pipeline wire trace protocol tomlplusplus::tomlplusplus)
motley_module(engine    UNITY USES base cluster policy pipeline wire trace protocol codec store learn transport sim runtime report config
                                   Boost::headers OpenSSL::Crypto Threads::Threads)
motley_module(library UNITY USES base cluster policy pipeline wire trace protocol codec store learn transport sim runtime report config engine
                             Boost::headers OpenSSL::Crypto Threads::Threads)
motley_module(bench     USES base cluster policy pipeline wire trace protocol codec store learn transport sim runtime report config engine
                             Boost::headers Threads::Threads)
motley_module(cli       UNITY USES base cluster policy pipeline wire trace protocol codec store learn transport sim runtime report config engine bench
                                   Boost::headers OpenSSL::Crypto CLI11::CLI11 tomlplusplus::tomlplusplus Threads::Threads)
