// assert: may be included again with another NDEBUG, as in C.
#undef assert
#ifdef NDEBUG
#define assert(x) ((void)0)
#else
#define assert(x) ((x) ? (void)0 : __assertfail(#x, __FILE__, __LINE__, __PRETTY_FUNCTION__, 1))
#endif
